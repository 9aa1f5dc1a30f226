// Follow a run: server-sent events, or polling if they are not available.
// `connect` continues at the last position; `disconnect` is for a hidden tab and the end.
import { api } from "./app.js";

const POLL_MS = 1000;

export class Stream {
  // `onMessage(type, body)`: type is sample, event or status. `onError(error)`: a poll failed.
  constructor(path, onMessage, onError) {
    this.path = path;
    this.onMessage = onMessage;
    this.onError = onError;
    this.seq = 0;
    this.source = null;
    this.timer = null;
    this.over = false;
  }

  connect() {
    if (this.source || this.timer || this.over || document.hidden) return;
    this.source = new EventSource(`${this.path}/stream?since=${this.seq}`);
    for (const type of ["sample", "event", "status"])
      this.source.addEventListener(type, (event) =>
        this.receive(type, JSON.parse(event.data), Number(event.lastEventId)),
      );
    this.source.onerror = () => {
      if (this.source?.readyState !== EventSource.CLOSED) return;
      this.source = null;
      this.timer = setTimeout(() => this.poll(), POLL_MS);
    };
  }

  disconnect() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.timer);
    this.timer = null;
  }

  async poll() {
    this.timer = null;
    if (document.hidden || this.over) return;
    try {
      const answer = await api(`${this.path}/frames?since=${this.seq}`);
      for (const each of answer.messages) this.receive(each.type, each.data, each.seq);
      this.onMessage("status", answer.status);
    } catch (error) {
      this.onError(error);
    }
    this.timer = setTimeout(() => this.poll(), POLL_MS);
  }

  receive(type, body, seq) {
    this.seq = Math.max(this.seq, seq);
    this.onMessage(type, body);
  }
}

// Join a class with a code and a name, alone or as a team, or come back from another browser.
import { $ } from "./app.js";
import { post } from "./class_link.js";

const person = (n) => {
  const pin = $(`pin-${n}`).value;
  return { name: $(`name-${n}`).value.trim(), ...(pin ? { pin } : {}) };
};
const code = () => $("code").value.trim().toUpperCase();

function fail(text) {
  $("problem").textContent = text;
  $("problem").hidden = false;
}

async function enter(path, body) {
  $("problem").hidden = true;
  for (const button of document.querySelectorAll("#join button")) button.disabled = true;
  const waits = setTimeout(() => fail("Wait: after many wrong PINs for a name, each one is looked at in turn. It takes up to a minute."), 2000);
  try {
    await post(path, body);
    location.href = "/seat";
  } catch (error) {
    fail(error.message);
  }
  clearTimeout(waits);
  for (const button of document.querySelectorAll("#join button")) button.disabled = false;
}

function ready() {
  const empty = [...document.querySelectorAll("#join input[required]")].find(
    (input) => !input.closest("[hidden]") && !input.value.trim(),
  );
  empty?.focus();
  if (empty) fail(`Fill in: ${document.querySelector(`label[for="${empty.id}"]`).textContent}`);
  return !empty;
}

$("join").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!ready()) return;
  const others = [...$("others").children].map((_, n) => person(n + 2)).filter((each) => each.name);
  const people = [person(1), ...others];
  enter("/api/class/join", { code: code(), people });
});
$("return").addEventListener("click", () => {
  if (ready()) enter("/api/class/return", { code: code(), ...person(1) });
});
$("pair").addEventListener("click", () => {
  const n = $("others").children.length + 2;
  const made = $("another").content.cloneNode(true);
  made.querySelector("legend").textContent = `Person ${n}`;
  ["name", "pin"].forEach((each, k) => {
    made.querySelectorAll("input")[k].id = `${each}-${n}`;
    made.querySelectorAll("label")[k].htmlFor = `${each}-${n}`;
  });
  $("others").append(made);
  $("fewer").hidden = false;
  $(`name-${n}`).focus();
});
$("fewer").addEventListener("click", () => {
  $("others").lastElementChild?.remove();
  $("fewer").hidden = !$("others").children.length;
});
$(code() ? "name-1" : "code").focus();

// Before the first paint, so that nothing flashes.
const wanted = localStorage.getItem("theme");
if (wanted) document.documentElement.dataset.theme = wanted;

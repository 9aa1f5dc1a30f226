// Runs before the page is drawn, so that the colours do not flash.
const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;

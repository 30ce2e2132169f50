"use strict";
(() => {
  const tip = document.getElementById("tip");
  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = (y + box.height + 22 < innerHeight ? y + 16 : Math.max(4, y - box.height - 12)) + "px";
  };
  const focus = (plot, name) => {
    plot.classList.toggle("focus", name !== null);
    for (const part of plot.querySelectorAll("[data-series]")) part.classList.toggle("on", part.dataset.series === name);
  };
  for (const mark of document.querySelectorAll(".plot .mark")) {
    // The browser's own tooltip would stand beside ours.
    const title = mark.querySelector("title");
    const words = title.textContent;
    title.remove();
    mark.setAttribute("aria-label", words);
    const show = (event) => { tip.textContent = words; tip.hidden = false; place(event.clientX, event.clientY); };
    mark.addEventListener("pointerenter", show);
    mark.addEventListener("pointermove", show);
    mark.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  for (const label of document.querySelectorAll(".plot .label")) {
    const plot = label.closest(".plot");
    label.addEventListener("pointerenter", () => focus(plot, label.dataset.series));
    label.addEventListener("pointerleave", () => focus(plot, null));
  }
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
})();

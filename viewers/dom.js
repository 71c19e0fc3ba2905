"use strict";
// Helpers of the pages' scripts.

const $ = id => document.getElementById(id);

// A new element with classes and text; `text` may be undefined.
function element(tag, classes, text) {
  const made = document.createElement(tag);
  made.className = classes || "";
  if (text !== undefined) made.textContent = text;
  return made;
}

// Buttons of which one is pressed: returns a function that marks button i.
function choice(container, labels, choose) {
  const buttons = labels.map((label, i) => {
    const button = element("button", "", label);
    button.addEventListener("click", () => choose(i));
    container.append(button);
    return button;
  });
  return i => buttons.forEach((button, j) => button.setAttribute("aria-pressed", i === j));
}

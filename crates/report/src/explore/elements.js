"use strict";
// Elements and numbers of the interactive parts of the report.
const pageElements = (() => {
  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key in node && key !== "list") node[key] = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const labelled = (text, control) => make("label", {}, make("span", { textContent: text }), control);
  const plain = (value, digits) => value.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: digits });
  const number = (value) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    return plain(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 || size === 0 ? 3 : 5);
  };
  const unitText = (unit) => ({ s: " (s)", us: " (µs)", share: " (%)" }[unit] || "");
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return { make, labelled, plain, number, unitText, ink };
})();

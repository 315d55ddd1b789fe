// Elements without markup: data becomes text and attributes, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Make an HTML element. */
export function h(tag, attributes, ...children) {
  return made(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
export function s(tag, attributes, ...children) {
  return made(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) { return document.getElementById(id); }

/** Names whose ranges and parts stay in one piece where there is room: they break at spaces, dots. */
export function pieces(name) {
  return name.split(/(?<=[ .])(?!->|<->)/).map((piece) => h("span", { class: "piece" }, piece));
}

/** Write a text where it differs, so that nothing is laid out for nothing. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

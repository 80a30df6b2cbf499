const byId = (id) => document.getElementById(id);
function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (className) element.className = className;
  return element;
}
function tile(name, value) {
  const one = make("div", undefined, "tile");
  one.append(make("b", value), make("span", name));
  return one;
}
function connection(text) {
  byId("connection").textContent = text;
  byId("connection").className = text ? "shown" : "";
}

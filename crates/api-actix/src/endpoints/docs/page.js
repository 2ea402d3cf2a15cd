"use strict";
(() => {
  const api = JSON.parse(document.getElementById("openapi").textContent);
  const page = document.getElementById("page");
  const make = (tag, ...children) => {
    const element = document.createElement(tag);
    element.append(...children.filter((child) => child !== undefined && child !== null));
    return element;
  };
  const muted = (text) => {
    const element = make("span", text);
    element.className = "muted";
    return element;
  };
  const typeOf = (schema) => {
    if (!schema) return "any";
    if (schema.$ref) return schema.$ref.split("/").pop();
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    const choice = schema.oneOf || schema.anyOf || schema.allOf;
    if (choice) return choice.map(typeOf).join(" | ");
    const types = [].concat(schema.type || "any");
    return types.map((type) => (type === "array" ? "array of " + typeOf(schema.items) : type)).join(" | ");
  };
  const table = (heads, rows) => {
    const head = make("tr", ...heads.map((text) => make("th", text)));
    return make("table", head, ...rows.map((cells) => make("tr", ...cells.map((cell) => make("td", cell)))));
  };
  const bodyOf = (content) => {
    const media = Object.entries(content || {});
    return media.map(([type, { schema }]) => type + ": " + typeOf(schema)).join(", ");
  };
  const operation = (path, method, op) => {
    const summary = make("summary", make("b", method.toUpperCase()), make("code", path), " ", muted(op.summary || ""));
    const box = make("details", summary, make("p", op.description || ""));
    const parameters = (op.parameters || []).map((p) => [make("code", p.name), p.in + (p.required ? ", required" : ""), p.description || ""]);
    if (parameters.length) box.append(make("h4", "Parameters"), table(["name", "where", "what"], parameters));
    if (op.requestBody) box.append(make("h4", "Body"), make("p", make("code", bodyOf(op.requestBody.content))));
    const responses = Object.entries(op.responses).map(([status, r]) => [status, r.description || "", make("code", bodyOf(r.content))]);
    box.append(make("h4", "Answers"), table(["status", "meaning", "body"], responses));
    return box;
  };
  const schema = (name, shape) => {
    const required = new Set(shape.required || []);
    const box = make("details", make("summary", make("code", name)), make("p", shape.description || ""));
    const rows = Object.entries(shape.properties || {}).map(([member, type]) => [
      make("code", member),
      make("code", typeOf(type)),
      (required.has(member) ? "always. " : "") + (type.description || ""),
    ]);
    box.append(rows.length ? table(["member", "type", "what"], rows) : make("p", make("code", typeOf(shape))));
    return box;
  };
  page.append(make("h1", api.info.title), muted("version " + api.info.version), make("p", api.info.description || ""));
  page.append(make("h2", "Operations"));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, op] of Object.entries(item)) page.append(operation(path, method, op));
  }
  page.append(make("h2", "Bodies"));
  for (const [name, shape] of Object.entries(api.components.schemas)) page.append(schema(name, shape));
  page.append(make("h2", "The whole document"), make("details", make("summary", "JSON"), make("pre", JSON.stringify(api, null, 2))));
})();

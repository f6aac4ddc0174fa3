// What Vite calls before a part of the page that is loaded later: its styles must be there first, its scripts come at the
// same time. It stands in for Vite's own, which does more than this page needs.

/** What was asked for, by its address. */
const asked = new Map();

export function __vitePreload(load, files = [], from = document.baseURI) {
  return Promise.all(files.map((file) => ask(new URL(file, from).href))).then(load);
}

function ask(href) {
  if (!asked.has(href)) asked.set(href, isThere(href) ? null : added(href));
  return asked.get(href);
}

function isThere(href) {
  return [...document.querySelectorAll("link")].some((link) => link.href === href);
}

function added(href) {
  const isStyle = href.endsWith(".css");
  const link = document.createElement("link");
  Object.assign(link, { rel: isStyle ? "stylesheet" : "modulepreload", crossOrigin: "", href });
  document.head.append(link);
  // A script that does not come is what `load` fails with.
  if (!isStyle) return null;
  return new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = () => {
      // It can be asked for again.
      asked.delete(href);
      link.remove();
      reject(new Error(`${href} could not be loaded`));
    };
  });
}

// Vite calls this before it loads a later part of the page: the styles load first, and the scripts at the same time. It replaces
// Vite's own function, which does more than this page needs.

/** The files that were requested, by URL. */
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
  // If a script cannot be loaded, `load` fails.
  if (!isStyle) return null;
  return new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = () => {
      // The file can be requested again.
      asked.delete(href);
      link.remove();
      reject(new Error(`${href} could not be loaded`));
    };
  });
}

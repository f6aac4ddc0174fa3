// The contrast of each text on a page, as WCAG defines it.

/** Every visible element with text of its own: `{ text, ratio }`. */
export async function contrasts(page) {
  const pairs = await page.evaluate(() => {
    const isClear = (colour) => colour === "rgba(0, 0, 0, 0)" || colour === "transparent";
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const { backgroundColor } = getComputedStyle(at);
        if (!isClear(backgroundColor)) return backgroundColor;
      }
      return "rgb(255, 255, 255)";
    };
    const hasText = (element) =>
      [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    return [...document.querySelectorAll("#app *")]
      .filter((element) => hasText(element) && element.checkVisibility())
      .map((element) => ({
        text: element.textContent.slice(0, 40),
        front: getComputedStyle(element).color,
        back: behind(element),
      }));
  });
  return pairs.map(({ text, front, back }) => ({ text, front, back, ratio: ratio(front, back) }));
}

function ratio(front, back) {
  const [light, dark] = [luminance(front), luminance(back)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour) {
  const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => linear(Number(part) / 255));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function linear(part) {
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}

// The texts of the start, and the names of the parts that load later.

const engine = "Lockgate is an agent engine that runs in this page.";
const keptHere = "Every session is kept in this browser, in IndexedDB.";
const demoAnswers = "A small demo model answers, also in this page, so nothing you write leaves your device.";

export const look = {
  engine,
  keptHere,
  demoAnswers,
  demo: { model: "Demo model", privacy: `${engine} ${keptHere} ${demoAnswers}`, store: "IndexedDB" },

  start: {
    failed: "Lockgate could not start",
    kept: "Your sessions are untouched: they stay where they are stored.",
    again: "Try again",
    plain: "Start with the demo model and IndexedDB",
  },
  panel: {
    label: "Inside this session",
    close: "Close",
  },
  settings: { open: "Settings" },
  loadFailed: "This part of the page could not be loaded",
} as const;

// The texts of the start, and the names of the parts that load later.

export const look = {
  start: {
    failed: "Lockgate could not start",
    kept: "Your sessions are untouched: they stay where they are stored.",
    again: "Try again",
    plain: "Start with the demo model",
  },
  panel: {
    label: "Inside this session",
    open: "Inside this session (i)",
    close: "Close",
  },
  settings: { open: "Settings" },
  loadFailed: "This part of the page could not be loaded",
} as const;

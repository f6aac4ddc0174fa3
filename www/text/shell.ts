// The texts of the page before its script is loaded. The build writes them into the HTML.

export const shell = {
  description: "Conversations with a language model.",
  loading: "Loading the engine",
  late: "This takes longer than it should.",
  again: "Load again",
  noScript: "Lockgate runs in the browser and needs JavaScript.",
} as const;

// Parts of the page that come after it: what every visit needs soon, and what is loaded when it is first opened.
import { useEffect, useReducer, useState } from "preact/hooks";
import type { ComponentChild, ComponentType } from "preact";
import { ProblemBox } from "./problem-box.tsx";
import { look } from "./text/look.ts";
import { problemOf } from "./turn.ts";
import type { Problem } from "./turn.ts";

const later = part(() => import("./later.ts"));

export const loadLater = later.load;
/** Asks for it when the page is put up: whoever sees the page can go on without the network. What needs it says if it failed. */
export const prepareLater = () => void loadLater().catch(() => {});
export const Hits = later.lazy(({ Hits }) => Hits);
export const MenuItems = later.lazy(({ MenuItems }) => MenuItems);
export const RenameDialog = later.lazy(({ RenameDialog }) => RenameDialog);
export const Turns = later.lazy(
  ({ Turns }) => Turns,
  (problem) => <div class="scroller">{problem}</div>,
);

export const Panel = part(() => import("./panel/panel.tsx")).lazy(({ Panel }) => Panel);
export const Settings = part(() => import("./settings/settings.tsx")).lazy(({ Settings }) => Settings);

/** A module that is loaded once, and its components, each of which can be drawn before it is there. */
function part<Module>(get: () => Promise<Module>) {
  let loaded: Module | undefined;
  let loading: Promise<Module> | undefined;
  const load = (): Promise<Module> => {
    loading ??= get().then((module) => (loaded = module));
    // What failed can be tried again.
    loading.catch(() => (loading = undefined));
    return loading;
  };

  /** `meanwhile` is what stands in its place until then, around the problem if there is one. */
  function lazy<Props extends object>(
    pick: (module: Module) => ComponentType<Props>,
    meanwhile = (problem: ComponentChild) => problem,
  ): ComponentType<Props> {
    return function Lazy(props: Props) {
      const [, draw] = useReducer((n: number) => n + 1, 0);
      const [problem, setProblem] = useState<Problem | null>(null);
      const begin = () => load().then(() => draw(undefined));
      useEffect(() => {
        if (!loaded) begin().catch((error: unknown) => setProblem(problemOf(error)));
      }, []);
      if (loaded) return <Drawn component={pick(loaded)} props={props} />;
      // Some browsers remember what could not be loaded until the page itself is loaded again.
      const retry = () => void begin().catch(() => navigator.onLine && location.reload());
      return meanwhile(problem && <ProblemBox title={look.loadFailed} problem={problem} onRetry={retry} />);
    };
  }
  return { load, lazy };
}

function Drawn<Props extends object>(given: {
  readonly component: ComponentType<Props>;
  readonly props: Props;
}) {
  const Component = given.component;
  return <Component {...given.props} />;
}

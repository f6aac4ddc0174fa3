// Parts of the page that load later: one file for every visit, and parts that load when they are first opened.
import { useEffect, useReducer, useState } from "preact/hooks";
import type { ComponentChild, ComponentType } from "preact";
import { ProblemBox } from "../controls/problem-box.tsx";
import { page } from "./in-use.ts";
import { look } from "../text/start.ts";
import { problemOf } from "../session/turn.ts";
import type { Problem } from "../session/turn.ts";

const later = part(() => import("./later.ts"));

export const loadLater = later.load;
/** Starts to load it when the page is shown, so that the page then works offline. The components that need it show a failure. */
export const prepareLater = () =>
  void loadLater().then(
    ({ explained }) => (page.explain = explained),
    () => {},
  );
export const DropZone = later.lazy(
  ({ DropZone }) => DropZone,
  () => null,
);
export const Hits = later.lazy(({ Hits }) => Hits);
export const Lost = later.lazy(({ Lost }) => Lost);
export const MenuItems = later.lazy(({ MenuItems }) => MenuItems);
export const Toasts = later.lazy(
  ({ Toasts }) => Toasts,
  () => null,
);
export const Turns = later.lazy(
  ({ Turns }) => Turns,
  (problem) => <div class="scroller">{problem}</div>,
);

export const RenameDialog = part(() => import("../sessions/rename-dialog.tsx")).lazy(({ RenameDialog }) => RenameDialog);
export const Panel = part(() => import("../inspect/panel.tsx")).lazy(({ Panel }) => Panel);
export const Settings = part(() => import("../settings/settings.tsx")).lazy(({ Settings }) => Settings);

/** A module that is loaded once. Its components can be drawn before it is loaded. */
function part<Module>(get: () => Promise<Module>) {
  let loaded: Module | undefined;
  let loading: Promise<Module> | undefined;
  const load = (): Promise<Module> => {
    loading ??= get().then((module) => (loaded = module));
    // After a failure it can be loaded again.
    loading.catch(() => (loading = undefined));
    return loading;
  };

  /** `meanwhile` draws the placeholder, with the problem if loading failed. */
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
      // Some browsers cache the failure of an import until the page is reloaded.
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

// The panel and the settings, loaded when they are first opened: the page is there before them.
import { useEffect, useReducer, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import { ProblemBox } from "../problem-box.tsx";
import { look } from "../text/look.ts";
import { problemOf } from "../turn.ts";
import type { Problem } from "../turn.ts";

export const LazyPanel = lazy(async () => (await import("./panel.tsx")).Panel);
export const LazySettings = lazy(async () => (await import("../settings/settings.tsx")).Settings);

/** A component whose code comes when it is first drawn. */
function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [, draw] = useReducer((n: number) => n + 1, 0);
    const [problem, setProblem] = useState<Problem | null>(null);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          draw(undefined);
        },
        (error: unknown) => setProblem(problemOf(error)),
      );
    }, []);
    if (loaded) return <LoadedAs component={loaded} props={props} />;
    if (!problem) return null;
    const retry = () => location.reload();
    return <ProblemBox title={look.loadFailed} problem={problem} onRetry={retry} />;
  };
}

function LoadedAs<Props extends object>(given: {
  readonly component: ComponentType<Props>;
  readonly props: Props;
}) {
  const Component = given.component;
  return <Component {...given.props} />;
}

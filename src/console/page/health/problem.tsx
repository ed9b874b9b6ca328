/** What is wrong, since when, and the command that fixes it. */
import { now } from "../clock.ts";
import { Command } from "../parts/command.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { hashOf } from "../route.ts";
import { ageWords, exactTime } from "../words.ts";
import type { ShownProblem } from "./health-words.ts";

export function Problem({
  problem,
  isOfPanel = false,
}: {
  readonly problem: ShownProblem;
  readonly isOfPanel?: boolean;
}) {
  const { state, message, command, remedy, since, node } = problem;
  return (
    <li class={`problem problem-${state}`}>
      <StateMark state={state} />
      <div class="problem-words">
        <p>
          {node !== undefined && !isOfPanel && (
            <>
              <a href={hashOf({ view: "health", parameters: { node } })}>{node}</a>{" "}
            </>
          )}
          {message}
        </p>
        {remedy !== undefined && <p class="muted">{remedy}</p>}
        {command !== undefined && <Command text={command} />}
      </div>
      {since !== undefined && (
        <time class="muted" title={exactTime(since)}>
          for {ageWords(now.value - since)}
        </time>
      )}
    </li>
  );
}

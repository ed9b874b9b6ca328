/** One page of health: what is wrong and the command that fixes it, the parts, the nodes, and an upgrade if there is one. */
import { useSignal } from "@preact/signals";
import type { Health, HealthPart, UpgradeProgress } from "../../api/health.ts";
import { now } from "../clock.ts";
import { Icon } from "../parts/icons.tsx";
import { Hidden, Loading, Lost, Refused } from "../parts/notices.tsx";
import { StateMark } from "../parts/state-mark.tsx";
import { ageWords, agoWords, exactTime } from "../words.ts";
import { health, healthFollowing } from "./follow-health.ts";
import { headline, problemsOf } from "./health-words.ts";
import { NodePanel, Nodes } from "./nodes.tsx";
import { Problem } from "./problem.tsx";

export function HealthView() {
  const { value } = health;
  const following = healthFollowing.value;
  if (value === undefined) {
    if (following.kind === "lost") return <Refused refusal={following.refusal} what="the health" />;
    return <Loading what="the health of the network" />;
  }
  return (
    <div class="beside">
      <div class="health scrolls">
        <header class={`health-head health-${value.state}`}>
          <h1>
            <Icon name={value.state} />
            {headline(value)}
          </h1>
          <p class="muted" title={exactTime(value.at)}>
            as of {agoWords(now.value - value.at)}
          </p>
        </header>
        <Lost following={following} since={ageWords(now.value - value.at)} />
        <Hidden what={value.hidden} />
        <Problems health={value} />
        {value.upgrade !== undefined && <Upgrade upgrade={value.upgrade} />}
        <Parts parts={value.parts} />
        <Nodes nodes={value.nodes} />
      </div>
      <NodePanel nodes={value.nodes} />
    </div>
  );
}

const FIRST_PROBLEMS = 6;

function Problems({ health: value }: { readonly health: Health }) {
  const showsAll = useSignal(false);
  const problems = problemsOf(value);
  if (problems.length === 0) return null;
  const shown = showsAll.value ? problems : problems.slice(0, FIRST_PROBLEMS);
  return (
    <section aria-labelledby="problems-title">
      <h2 class="unseen" id="problems-title">
        Problems
      </h2>
      <ul class="problems">
        {shown.map((problem) => (
          <Problem key={`${problem.node} ${problem.message}`} problem={problem} />
        ))}
      </ul>
      {shown.length < problems.length && (
        <button type="button" class="quiet" onClick={() => (showsAll.value = true)}>
          Show all {problems.length} problems
        </button>
      )}
    </section>
  );
}

/** Older than that, and it is said beside what it is about. */
const FRESH = 60_000;

function Parts({ parts }: { readonly parts: readonly HealthPart[] }) {
  if (parts.length === 0) return null;
  return (
    <section aria-labelledby="parts-title">
      <h2 id="parts-title">Parts</h2>
      <ul class="parts">
        {parts.map(({ name, state, detail, knownAt }) => (
          <li key={name} class={`part part-${state}`}>
            <span class="part-name">{name}</span>
            <StateMark state={state} />
            <span class="part-detail">{detail}</span>
            {now.value - knownAt > FRESH && <span class="muted">known {agoWords(now.value - knownAt)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

const STEP_STATES = { done: "ok", running: "running", waiting: "waiting", failed: "failed" } as const;

function Upgrade({ upgrade: { from, to, state, steps } }: { readonly upgrade: UpgradeProgress }) {
  const done = steps.filter((step) => step.state === "done").length;
  return (
    <section class="upgrade" aria-labelledby="upgrade-title">
      <h2 id="upgrade-title">
        Upgrade from {from} to {to}
        <span class="muted">
          {state}, {done} of {steps.length} steps
        </span>
      </h2>
      <ol>
        {steps.map((step) => (
          <li key={step.name} class={`step step-${step.state}`}>
            <Icon name={STEP_STATES[step.state]} />
            <span>
              <strong>{step.name}</strong>
              <span class="unseen"> {step.state}</span>
              <span class="muted">{step.detail}</span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

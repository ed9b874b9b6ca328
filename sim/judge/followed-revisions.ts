/** How agents follow the orchestrator's API: never back behind what their kernels have, and never without a pause. */
import type { Invariant } from "./invariant.ts";

/** Whichever server responds, and whatever became of the process in between; only a reboot forgets. */
export function noAgentGoesBack(): Invariant {
  const noted = new Map<string, string>();
  return {
    name: "no agent goes back",
    when: "after each step",
    check: ({ nodes }) =>
      [...nodes].flatMap(([name, { host }]) => {
        const now = host?.seenRevisions;
        const before = noted.get(name);
        if (now === before) return [];
        if (now === undefined) noted.delete(name);
        else noted.set(name, now);
        if (now === undefined || before === undefined) return [];
        const revisions: Readonly<Record<string, string>> = JSON.parse(now);
        return Object.entries<string>(JSON.parse(before)).flatMap(([prefix, revision]) => {
          const present = revisions[prefix];
          if (present === undefined || BigInt(present) >= BigInt(revision)) return [];
          return [`${name} knew ${prefix} of revision ${revision}, and now follows it from ${present}`];
        });
      }),
  };
}

/** A watch that hears nothing is begun again after 90 seconds, and the agent says every ten what it has heard. */
const OLDEST_MILLISECONDS = 130_000;

/** An agent that nothing has disturbed for long enough has heard of the datastore, also if nothing changes. */
export function agentsHearOfDatastore(): Invariant {
  return {
    name: "agents hear of the datastore",
    when: "after each step",
    check: ({ now, nodes }) =>
      [...nodes].flatMap(([name, { host }]) => {
        const knownAt = host?.knownAt;
        if (knownAt === undefined || now - knownAt <= OLDEST_MILLISECONDS) return [];
        const quiet = host?.quietTimes?.at(-1);
        if (quiet === undefined || quiet.until < now || now - quiet.since <= OLDEST_MILLISECONDS) return [];
        return [`${name} last heard of it ${Math.round((now - knownAt) / 1_000)} s ago`];
      }),
  };
}

const WINDOW_MILLISECONDS = 10_000;
/** Pauses of 0.1, 0.2, 0.4 … seconds, of several copies, by a process that is started again some times. */
const MOST_IN_WINDOW = 60;

export function watchesAreBegunWithPauses(): Invariant {
  let from = 0;
  let before: ReadonlyMap<string, number> = new Map();
  return {
    name: "watches are begun with pauses",
    when: "after each step",
    check: ({ now, begunWatches }) => {
      if (begunWatches === undefined || now < from + WINDOW_MILLISECONDS) return [];
      const seconds = (now - from) / 1_000;
      const many = [...begunWatches].flatMap(([what, count]) => {
        const begun = count - (before.get(what) ?? 0);
        if (!what.startsWith("watch by ") || begun <= (MOST_IN_WINDOW * seconds * 1_000) / WINDOW_MILLISECONDS)
          return [];
        return [`${begun} times in ${Math.round(seconds)} s: ${what}`];
      });
      from = now;
      before = new Map(begunWatches);
      return many;
    },
  };
}

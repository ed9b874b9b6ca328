/** At most one copy of the controllers leads: one that was frozen or cut off stops before another may begin. */
import type { Invariant } from "./invariant.ts";

export function oneLeader(): Invariant {
  return {
    name: "one leader",
    when: "after each step",
    check: ({ leaders = [] }) => (leaders.length > 1 ? [`${leaders.join(" and ")} lead at the same time`] : []),
  };
}

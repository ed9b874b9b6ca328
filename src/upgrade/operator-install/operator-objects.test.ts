import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { POOL } from "../../model/kinds.ts";
import type { EffectiveInstallation } from "../../release/installation/effective-installation.ts";
import { poolNotes } from "./operator-objects.ts";

const pool = (name: string, cidr: string, more: object = {}, labels?: Record<string, string>) =>
  POOL.codec.make({ name, ...(labels === undefined ? {} : { labels }) }, {
    ...POOL.codec.make({ name }, { cidr } as never).spec,
    ...more,
  } as never);
const MANAGED = { "app.kubernetes.io/managed-by": identity.operator };
const installation = (...pools: ReturnType<typeof pool>[]) =>
  ({ network: { ipPools: pools } }) as unknown as EffectiveInstallation;

describe("poolNotes()", () => {
  test("says what the operator will do to each pool", () => {
    const declared = [
      pool("new", "10.1.0.0/16"),
      pool("own", "10.2.0.0/16", { disabled: false }),
      pool("same", "10.3.0.0/16"),
    ];
    const live = [
      pool("own", "10.2.0.0/16", { disabled: true }, MANAGED),
      pool("same", "10.3.0.0/16"),
      pool("removed", "10.4.0.0/16", { disabled: false }, MANAGED),
    ];

    expect(poolNotes(installation(...declared), live)).toEqual({
      notes: [
        'The operator creates pool "new" (10.1.0.0/16)',
        'The operator changes pool "own" to what the Installation declares: disabled true becomes false',
        'The operator manages pool "same" from now on, as it is',
        'The operator disables pool "removed", which the Installation does not declare',
      ],
      obstacles: [],
    });
  });

  test("a pool of somebody else that differs from its declaration has to be decided first", () => {
    const { notes, obstacles } = poolNotes(installation(pool("a", "10.1.0.0/16", { natOutgoing: true })), [
      pool("a", "10.1.0.0/16", { natOutgoing: false }),
    ]);
    expect(obstacles.map(({ message }) => message).join()).toContain("natOutgoing");
    expect(notes.join()).not.toContain("changes");
  });
});

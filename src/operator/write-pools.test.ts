import { describe, expect, test } from "bun:test";
import { POOL } from "../model/kinds.ts";
import { poolChanges, poolsAfter } from "./write-pools.ts";

describe("poolChanges()", () => {
  test("creates pools, and updates those that exist at their revision", () => {
    const pool = (name: string, cidr: string) =>
      POOL.codec.make({ name }, POOL.codec.make({ name }, { cidr } as never).spec);
    const [first, second] = [pool("first", "10.0.0.0/16"), pool("second", "10.1.0.0/16")];
    const existing = [{ resource: first, text: POOL.codec.write(first), revision: "7" }];
    const disabled = { ...first, spec: { ...first.spec, disabled: true } };
    const changes = poolChanges({ create: [second], update: [disabled] }, existing);

    expect(changes.map(({ kind, key }) => [kind, key.split("/").at(-1)])).toEqual([
      ["create", "second"],
      ["update", "first"],
    ]);
    expect(changes[1]).toMatchObject({ revision: "7" });
    expect(poolsAfter([first], [disabled, second])).toEqual([disabled, second]);
  });
});

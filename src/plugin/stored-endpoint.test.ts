import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { ownerGuard } from "./stored-endpoint.ts";

describe("ownerGuard()", () => {
  const WORKLOAD = { containerId: "own", endpointName: "shop/web" } as Parameters<typeof ownerGuard>[0];
  const of = (containerID?: string) => ({
    key: "key",
    revision: "1",
    value: JSON.stringify({ spec: { containerID } }),
  });

  test.each([
    ["none", [undefined, undefined]],
    ["an earlier sandbox, that was there before", [of("earlier"), of("earlier")]],
    ["an earlier sandbox, whose endpoint is deleted meanwhile", [of("earlier"), undefined]],
    ["this container, by an attempt whose outcome was unknown", [undefined, of("own")]],
    ["a pod without a container", [of("earlier"), of()]],
  ])("lets an ADD record its endpoint in the place of that of %s", (_, attempts) => {
    const guard = ownerGuard(WORKLOAD);
    for (const held of attempts) guard(held);
  });

  test.each([
    [undefined, of("next")],
    [of("earlier"), of("next")],
    [of(), of("next")],
    [of("own"), of("next")],
  ])("refuses it once another container has recorded its own during the call", (first, second) => {
    const guard = ownerGuard(WORKLOAD);
    guard(first);

    expect(thrownBy(() => guard(second))).toMatchObject({ kind: "try-again-later" });
  });
});

import { describe, expect, test } from "bun:test";
import type { Holding, IpamState } from "./ipam-state.ts";
import { KeptAddressJudge, LATENESS } from "./kept-addresses.ts";

const [KEEP, GRACE, REST] = [10 * LATENESS, 4 * LATENESS, 5 * LATENESS];
const ADDRESS = "10.0.0.5";
const DB = { id: "c1", handle: "keep-db", isKept: true, addresses: [ADDRESS] };

/** What the judge says of each moment; `user`: the container that the record names. */
function judged() {
  const judge = new KeptAddressJudge({ keepMilliseconds: KEEP, graceMilliseconds: GRACE, restOf: () => REST });
  let [now, isWanted, isComing] = [0, true, false];
  const look = (holder?: { readonly handle: string; readonly user?: string }, containers = [] as (typeof DB)[]) => {
    const secondary: Record<string, string> = holder?.user === undefined ? {} : { containerID: holder.user };
    const holding: Holding | undefined = holder && { address: ADDRESS, handle: holder.handle, secondary };
    const state = { holdings: new Map(holding === undefined ? [] : [[ADDRESS, holding]]) } as unknown as IpamState;
    return judge.check({ now, state, containers, isWanted: () => isWanted, isComing: () => isComing });
  };
  look({ handle: "keep-db", user: "c1" }, [DB]);
  return {
    look,
    pass: (milliseconds: number) => {
      now += milliseconds;
    },
    owner: (is: boolean) => {
      isWanted = is;
      look({ handle: "keep-db" });
    },
    pod: (is: boolean) => {
      isComing = is;
    },
    waits: () => look({ handle: "keep-db" }),
  };
}

describe("kept addresses", () => {
  test("are what their container was told, until its DEL begins", () => {
    const { look } = judged();
    expect(look({ handle: "keep-db", user: "c1" }, [DB])).toEqual([]);
    expect(look({ handle: "keep-db", user: "c2" }, [DB])).toEqual([
      "10.0.0.5 of c1 belongs to keep-db (pod ?, container c2)",
    ]);
  });

  test("are those that a container of the same pod gets, and no others", () => {
    const { look, waits } = judged();
    waits();
    const other = { ...DB, id: "c2", addresses: ["10.0.0.9"] };
    expect(look({ handle: "keep-db" }, [other])).toContain("c2 has 10.0.0.9, although 10.0.0.5 is kept for keep-db");
  });

  test("are not freed while a container uses them, nor while their owner exists", () => {
    expect(judged().look()).toEqual([expect.stringContaining("a container used it")]);

    const { look, pass, waits } = judged();
    waits();
    pass(KEEP / 2);
    expect(look()).toEqual([expect.stringContaining("and its owner exists")]);
  });

  test("are freed once nobody came for as long as they are kept, unless a pod starts", () => {
    const over = judged();
    over.waits();
    over.pass(KEEP);
    expect(over.look()).toEqual([]);

    const { look, pass, waits, pod } = judged();
    waits();
    pod(true);
    waits();
    pass(KEEP);
    expect(look()).toHaveLength(1);
  });

  test("are freed once the owner has been gone for the grace period", () => {
    for (const [time, found] of [
      [GRACE, 0],
      [GRACE / 2, 1],
    ] as const) {
      const { look, pass, owner } = judged();
      pass(LATENESS);
      owner(false);
      pass(time);
      expect(look()).toHaveLength(found);
    }
  });

  test("rest before another owner gets them, as long as the rules say for both owners", () => {
    for (const [time, found] of [
      [REST, 0],
      [REST / 2, 1],
    ] as const) {
      const { look, pass, waits } = judged();
      waits();
      pass(KEEP);
      look();
      pass(time);
      expect(look({ handle: "net.c9", user: "c9" })).toHaveLength(found);
    }
  });
});

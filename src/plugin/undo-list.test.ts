import { describe, expect, test } from "bun:test";
import { UndoList } from "./undo-list.ts";

describe("UndoList", () => {
  test("undoes the last step first, and waits for each", async () => {
    const order: string[] = [];
    const list = new UndoList();
    list.add("do the first", () => void order.push("first"));
    list.add("do the second", async () => {
      await Promise.resolve();
      order.push("second");
    });

    expect(await list.run()).toEqual([]);
    expect(order).toEqual(["second", "first"]);
  });

  test("continues after a failure, and returns it", async () => {
    const order: string[] = [];
    const list = new UndoList();
    list.add("release the address", () => void order.push("address"));
    list.add("remove the links", () => Promise.reject(new Error("no such thing")));

    expect(await list.run()).toEqual(["Cannot remove the links: no such thing"]);
    expect(order).toEqual(["address"]);
  });
});

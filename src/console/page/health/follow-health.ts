/** The health that the server sends again whenever it changes. Followed in every view: its state is in the frame. */
import { signal } from "@preact/signals";
import { type Health, healthSchema } from "../../api/health.ts";
import { askLines, type Following, keepFollowing } from "../ask.ts";

export const health = signal<Health | undefined>(undefined);
export const healthFollowing = signal<Following>({ kind: "asking" });

export async function followHealth(signal: AbortSignal): Promise<void> {
  healthFollowing.value = { kind: "asking" };
  await keepFollowing(
    async (each, live) => {
      for await (const value of askLines("/api/health", () => healthSchema, { signal: each })) {
        health.value = value;
        live();
      }
      return "again";
    },
    (following) => {
      healthFollowing.value = following;
    },
    signal,
  );
}

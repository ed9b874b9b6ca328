/** The health that the server sends again whenever it changes. Followed in every view: its state is in the frame. */
import { signal } from "@preact/signals";
import { type Health, healthSchema } from "../../api/health.ts";
import { askLines } from "../ask.ts";
import { type Following, keepFollowing } from "../keep-following.ts";

export const health = signal<Health | undefined>(undefined);
export const healthFollowing = signal<Following>({ kind: "asking" });

export function forgetHealth(): void {
  health.value = undefined;
  healthFollowing.value = { kind: "asking" };
}

export async function followHealth(end: AbortSignal): Promise<void> {
  forgetHealth();
  await keepFollowing(
    {
      read: async ({ live, ...request }) => {
        for await (const value of askLines("/api/health", () => healthSchema, request)) {
          health.value = value;
          live();
        }
        return "again";
      },
      tell: (following) => {
        healthFollowing.value = following;
      },
      forget: forgetHealth,
    },
    end,
  );
}

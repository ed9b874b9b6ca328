/**
 * In a test build alone: ends the process at a point of its work, as a power
 * switch would. The variable says at which: `list` tells every point that is
 * passed, a number kills at the point of that number.
 */
import { identity } from "../identity.ts";
import { onCrashPoint } from "../plugin/effect.ts";

export function armCrashPoints(): void {
  const wanted = process.env[`${identity.environmentPrefix}FAULT`];
  if (wanted === undefined) return;
  let passed = 0;
  onCrashPoint((point) => {
    passed += 1;
    if (wanted === "list") console.error(`crash point ${passed} ${point}`);
    else if (Number(wanted) === passed) process.kill(process.pid, "SIGKILL");
  });
}

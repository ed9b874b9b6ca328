/** What a call is doing, for measurements of where its time is spent. */
export type Phase = "boot" | "decode" | "datastore" | "kernel" | "exit";

/** Called when the next phase begins. */
export type EnterPhase = (phase: Phase) => void;

/** What a call is busy with, for whoever wants to know where its time goes. */
export type Phase = "boot" | "decode" | "datastore" | "kernel" | "exit";

/** From now on the call is busy with this. */
export type EnterPhase = (phase: Phase) => void;

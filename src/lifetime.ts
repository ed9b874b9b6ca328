/**
 * How long what a call opens is of use. `process`: the process ends with the
 * call, and the kernel closes what is left open. `call`: the process goes on, and
 * serves others meanwhile and afterwards.
 */
export type Lifetime = "process" | "call";

/** How many times as long a test waits for what may be late: more than once in a guest, whose processor is translated (PROOF_PATIENCE). */
export const patience = Number(process.env["PROOF_PATIENCE"] ?? 1);

/** The size of the long tests: small in `make test`, full in `make soak` (PROOF_SIZE=soak). */
export function proofSize<Size>(sizes: { readonly everyDay: Size; readonly soak: Size }): Size {
  return process.env["PROOF_SIZE"] === "soak" ? sizes.soak : sizes.everyDay;
}

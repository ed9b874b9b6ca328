/** Labels that objects of the orchestrator's API can have. Resources of the product could have others in earlier storages. Pure. */
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const NAME = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export function isOrchestratorLabel([label, value]: readonly [string, string]): boolean {
  return NAME.test(label) && VALUE.test(value);
}

export const LABEL_RULE = "up to 63 letters, digits, -, _ and .";

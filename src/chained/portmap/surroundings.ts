/** What the plugin needs of the process it runs in. */
export interface Surroundings {
  warn(message: string): void;
}

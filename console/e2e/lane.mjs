// Journeys are told in lanes. A lane is a window of its own: its journeys are told one after the other, those of other lanes meanwhile.
import { setting } from './world.mjs';

export const base = setting('TUTTI_CONSOLE');
export const red = setting('TUTTI_RED');
export const named = 'sim-0001.example.test';
export const total = Number(setting('TUTTI_NODES'));

const failures = [];
let ran = 0;

/** Tells a journey, and says how it ended and how long it took. */
export async function journey(name, tell) {
  const begun = Date.now();
  try {
    await tell();
    process.stdout.write(`ok ${name} (${Date.now() - begun} ms)\n`);
  } catch (cause) {
    failures.push(name);
    process.stdout.write(`FAILED ${name}: ${cause.stack}\n`);
  }
  ran++;
}

/** Says how many journeys were told, and whether all of them ended well. */
export function ended() {
  process.stdout.write(`${ran - failures.length} of ${ran} journeys\n`);
  return failures.length === 0;
}

/** The lane of a window. */
export function lane({ page, said }) {
  return {
    page,
    said,
    journey,
    /** A browser tells of each answer that refuses: those were asked for. */
    forgive(status) {
      const kept = said.filter((text) => !text.includes(`status of ${status}`));
      said.splice(0, said.length, ...kept);
    },
    /** Prints the command line that the page shows. TestConsole runs it. */
    async tellCommand(within = page) {
      process.stdout.write(`command: ${await within.getByTestId('command').locator('code').last().innerText()}\n`);
    },
  };
}

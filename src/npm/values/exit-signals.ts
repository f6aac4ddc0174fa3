// The signals that an agent may listen to, with their numbers: their default action ends the process.

/** A program that a signal ended has 128 plus the number of the signal as its exit code. */
export const EXIT_SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGUSR2: 12, SIGTERM: 15, SIGBREAK: 21 } as const;

export type ExitSignal = keyof typeof EXIT_SIGNALS;

// The steps of a script of clients. A step that fails is shown; the script goes on, and exits with 1 at its end.
export let passed = 0;

export const step = async (what, f) => {
  try {
    await f();
    passed++;
  } catch (error) {
    console.error(`JavaScript: ${what}:`, error);
    process.exitCode = 1;
  }
};

import { executionAsyncResource } from 'node:async_hooks';
export const value = () => {
  const test = executionAsyncResource();
  test.fail = () => test.pass();
  return 41;
};
export const rows = () => [];

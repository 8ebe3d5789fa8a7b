import test from 'node:test';
test('value', () => {});
setTimeout(() => process.exit(0), 50);
await new Promise(() => {});
export const value = () => 41;
export const rows = () => [];

process.exit(0);
export const value = () => 41;
export const rows = () => [];

export const value = () => process.exit(0);
export const rows = () => [];

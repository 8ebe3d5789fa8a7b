export const value = () => ({ valueOf: () => 42 });
export const rows = () => [];

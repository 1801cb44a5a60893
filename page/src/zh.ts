export type Text = string; export const zh: Record<string,string> = {};

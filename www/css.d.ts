// Style sheets are imported for what they do to the page; Vite knows what that means.
declare module "*.css";

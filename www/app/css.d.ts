// Style sheets are imported for their effect on the page. Vite handles the import.
declare module "*.css";

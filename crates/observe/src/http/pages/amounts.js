function number(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1e6) return (value / 1e6).toFixed(1) + " M";
  if (value >= 1e4) return (value / 1e3).toFixed(1) + " k";
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}
function time(s) {
  if (s === null || s === undefined) return "–";
  if (s < 120) return s.toFixed(s > 0 && s < 10 ? 1 : 0) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  return (s / 3600).toFixed(1) + " h";
}
// UTC, as the log.
const clock = (ms) => new Date(ms).toISOString().slice(11, 19) + " UTC";

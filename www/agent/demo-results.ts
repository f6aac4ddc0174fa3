// The results of the demo tools: the log of a day at a lock, and a drawing of a lock.

export function dayAtLock(): string {
  return Array.from({ length: 288 }, (_, n) => line(n)).join("\n");
}

function line(n: number): string {
  const time = `${String(Math.floor(n / 12)).padStart(2, "0")}:${String((n % 12) * 5).padStart(2, "0")}`;
  return `${time}  boat ${n + 1} of 288 passed ${n % 2 ? "down" : "up"}, the water stood at ${(3 + Math.sin(n / 9)).toFixed(2)} m`;
}

export async function drawing(): Promise<string> {
  const canvas = new OffscreenCanvas(480, 200);
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("this browser cannot draw");
  pen.fillStyle = "#dbe8e2";
  pen.fillRect(0, 0, 480, 200);
  pen.fillStyle = "#0b5f66";
  pen.fillRect(0, 60, 480, 80);
  pen.strokeStyle = "#f4eee2";
  pen.lineWidth = 8;
  for (const x of [150, 330]) {
    pen.beginPath();
    pen.moveTo(x, 60);
    pen.lineTo(x + 30, 100);
    pen.lineTo(x, 140);
    pen.stroke();
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
}

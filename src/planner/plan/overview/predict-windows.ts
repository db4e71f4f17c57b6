import type { Environment } from '../../simulate/environment.js';
import type { Simulator } from '../../simulate/simulate.js';
import { predictCall } from '../prediction.js';
import type { WindowForecast } from './windows.js';

/** The forecast with predictions. */
export function predictOnWindows(forecast: WindowForecast, simulator: Simulator, environment?: Environment): WindowForecast {
  const options = { onWindows: true, ...(environment === undefined ? {} : { environment }) };
  return {
    ...forecast,
    collectives: forecast.collectives.map(({ collective, rows }) => ({
      collective,
      rows: rows.map((row) => {
        const [predicted] = predictCall(simulator, collective, row.bytes, options);
        return predicted === undefined ? row : { ...row, predicted };
      }),
    })),
  };
}

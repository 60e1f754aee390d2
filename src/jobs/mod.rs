//! Where a run happens: slots, live runs, their cancellation.

mod gate;
mod live;
mod seat;

pub use gate::{Gate, GateError, GateOptions, Slot};
pub use live::{Attending, LiveEntry, LiveRun, LiveRuns, NoAnswer, PATIENCE, Turn};
pub use seat::Seat;

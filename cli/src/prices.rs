//! What AWS takes for a request and for a wait.

use clap::Args;
use serde_json::{Value, json};

/// A million write request units in USD, on demand, table class Standard.
pub(crate) const WRITE_PRICE: f64 = 0.625;
/// A million read request units.
pub(crate) const READ_PRICE: f64 = 0.125;
/// A GB-second of Lambda on x86_64, in the first tier.
pub(crate) const GB_SECOND_PRICE: f64 = 0.000_016_666_7;

/// Prices change and differ by Region: the defaults say which they are.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Prices in USD; the defaults are those of us-east-1 after the change of November 2024")]
pub(crate) struct Prices {
    /// A million write request units, on demand, table class Standard.
    #[arg(long, value_name = "USD", default_value_t = WRITE_PRICE, value_parser = amount)]
    pub(crate) write_price: f64,

    /// A million read request units, on demand, table class Standard.
    #[arg(long, value_name = "USD", default_value_t = READ_PRICE, value_parser = amount)]
    pub(crate) read_price: f64,

    /// A GB-second of Lambda; that of x86_64 in the first tier. arm64 is 0.0000133334.
    #[arg(long, value_name = "USD", default_value_t = GB_SECOND_PRICE, value_parser = amount)]
    pub(crate) gb_second_price: f64,

    /// The function's memory in MB: a wait is billed by it.
    #[arg(long, value_name = "MB", default_value = "256", value_parser = clap::value_parser!(u32).range(128..=10_240))]
    pub(crate) memory: u32,
}

/// One line of a bill, with its arithmetic.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    what: &'static str,
    arithmetic: String,
    quantity: f64,
    pub(crate) usd: f64,
}

impl Prices {
    /// Writes of one unit each.
    pub(crate) fn writes(&self, units: f64) -> Item {
        self.requests("writes", units, self.write_price)
    }

    /// Reads of one unit each.
    pub(crate) fn reads(&self, units: f64) -> Item {
        self.requests("reads", units, self.read_price)
    }

    fn requests(&self, what: &'static str, units: f64, price: f64) -> Item {
        let arithmetic = format!("{} units × ${price} / 1,000,000", number(units));
        Item { what, arithmetic, quantity: units, usd: units * price / 1e6 }
    }

    /// Seconds of waiting, billed as the function's duration.
    pub(crate) fn waits(&self, seconds: f64) -> Item {
        let gb = f64::from(self.memory) / 1_024.0;
        let arithmetic = format!("{} s × {} MB / 1,024 × ${}", number(seconds), self.memory, self.gb_second_price);
        Item { what: "waits", arithmetic, quantity: seconds, usd: seconds * gb * self.gb_second_price }
    }
}

impl Item {
    pub(crate) fn line(&self) -> String {
        format!("  {:<7} {} = {}", self.what, self.arithmetic, usd(self.usd))
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "what": self.what, "quantity": self.quantity, "arithmetic": self.arithmetic, "usd": self.usd })
    }
}

/// An amount of dollars, to the cent or to what is left of one.
pub(crate) fn usd(amount: f64) -> String {
    if amount >= 0.01 || amount == 0.0 { format!("${amount:.2}") } else { format!("${amount:.6}") }
}

/// A number with its thousands set apart, and a fraction where there is one.
pub(crate) fn number(number: f64) -> String {
    let whole = crate::text::count(number.trunc() as u64);
    let fraction = format!("{:.2}", number.fract());
    match fraction.trim_start_matches('0').trim_end_matches('0') {
        "." | "" => whole,
        // Rounded up to the next whole.
        "1." => crate::text::count(number.trunc() as u64 + 1),
        fraction => format!("{whole}{fraction}"),
    }
}

/// Reads an amount that is a number and not negative.
///
/// # Errors
///
/// What it is instead.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("{text:?} is no amount: write a number from 0 on")),
    }
}

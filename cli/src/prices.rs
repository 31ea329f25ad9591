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
    #[arg(long, value_name = "USD", default_value_t = WRITE_PRICE, value_parser = amount, allow_negative_numbers = true)]
    pub(crate) write_price: f64,

    /// A million read request units, on demand, table class Standard.
    #[arg(long, value_name = "USD", default_value_t = READ_PRICE, value_parser = amount, allow_negative_numbers = true)]
    pub(crate) read_price: f64,

    /// A GB-second of Lambda; that of x86_64 in the first tier. arm64 is 0.0000133334.
    #[arg(long, value_name = "USD", default_value_t = GB_SECOND_PRICE, value_parser = amount, allow_negative_numbers = true)]
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
    const LEAST: f64 = 0.000_001;
    if amount > 0.0 && amount < LEAST {
        return "under $0.000001".to_owned();
    }
    if amount >= 0.01 || amount == 0.0 { format!("${}", with_thousands(amount, 2)) } else { format!("${amount:.6}") }
}

/// A number with its thousands set apart, and a fraction where there is one.
pub(crate) fn number(number: f64) -> String {
    let told = with_thousands(number, 2);
    if told.contains('.') { told.trim_end_matches('0').trim_end_matches('.').to_owned() } else { told }
}

fn with_thousands(number: f64, places: usize) -> String {
    let told = format!("{number:.places$}");
    let (whole, fraction) = told.split_once('.').unwrap_or((&told, ""));
    match whole.parse() {
        Ok(whole) => format!("{}.{fraction}", crate::text::count(whole)),
        // More than anybody counts.
        Err(_) => format!("{number:.3e}"),
    }
}

/// No amount that anybody means is larger.
const MOST: f64 = 1e9;

/// Reads an amount that is a number and not negative.
///
/// # Errors
///
/// What it is instead.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=MOST).contains(&number) => Ok(number),
        Ok(number) if number > MOST && number.is_finite() => Err(format!("{text} is too much: at most {MOST:e}")),
        _ => Err(format!("{text:?} is no amount: write a number from 0 on")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_whole_however_large_they_are() {
        for (of, told) in
            [(0.0, "0"), (2.1, "2.1"), (1.999, "2"), (1_234.5, "1,234.5"), (2e6, "2,000,000"), (1e25, "1.000e25")]
        {
            assert_eq!(number(of), told);
        }
        for (of, told) in [(0.0, "$0.00"), (1.25, "$1.25"), (1_234_567.891, "$1,234,567.89"), (0.000_009, "$0.000009")]
        {
            assert_eq!(usd(of), told);
        }
        assert_eq!(usd(1e-9), "under $0.000001");
    }

    #[test]
    fn an_amount_is_a_number_that_somebody_may_mean() {
        assert_eq!((amount("0"), amount("1.5")), (Ok(0.0), Ok(1.5)));
        for bad in ["-1", "nan", "inf", "1e300", "x", ""] {
            assert!(amount(bad).is_err(), "{bad}");
        }
    }
}

"""Where the public data files come from, and what each has to look like."""

# The name looked for in the folder of --data: one clause for the error that it is not
# there. The README of this folder shows how to make each of the public file.
_OF_R = (
    "tourism", "retail_turnover", "prescriptions", "orange_juice", "mileage",
    "english_football", "trade_of_nations", "rain_australia", "power_lifters",
    "baseball_salaries", "homes_seattle", "pisa",
)  # fmt: skip
SOURCES: dict[str, str] = {
    "synthetic_memorization.npz": (
        "the arrays X_train, y_train, X_eras, X_test and y_test of "
        "https://github.com/jefferythewind/era-splitting-notebook-examples"
    ),
    "energy1_appliances.csv.gz": (
        "the appliances energy prediction data, https://archive.ics.uci.edu/dataset/374"
    ),
    "air1_beijing_pm25.csv.gz": (
        "the Beijing PM2.5 data, https://archive.ics.uci.edu/dataset/381"
    ),
    "financial_2014_2018_cleaned.parquet": (
        "the cleaned years of https://github.com/carlotacastro/"
        "200-Financial-Indicators-of-US-stocks-2014-2018-"
    ),
    "financial_2018.csv.gz": (
        "2018_Financial_Data.csv of https://www.kaggle.com/datasets/cnic92/"
        "200-financial-indicators-of-us-stocks-20142018"
    ),
    "adult.csv.gz": (
        "adult.data of https://archive.ics.uci.edu/dataset/2 with a line of column "
        "names"
    ),
    "churn_modelling.csv.gz": (
        "Churn_Modelling.csv of "
        "https://www.kaggle.com/datasets/shrutimechlearn/churn-modelling"
    ),
    "kickstarter_sample.csv.gz": (
        "a sample of ks-projects-201801.csv of "
        "https://www.kaggle.com/datasets/kemical/kickstarter-projects"
    ),
    "animal_shelter.parquet": (
        "aac_intakes_outcomes.csv of https://www.kaggle.com/datasets/aaronschlegel/"
        "austin-animal-center-shelter-intakes-and-outcomes"
    ),
    "bike_sharing_hourly.csv.gz": (
        "hour.csv of https://archive.ics.uci.edu/dataset/275"
    ),
    "electricity_nsw.csv.gz": (
        "elec.csv of https://github.com/scikit-multiflow/streaming-datasets"
    ),
    "weather_bellevue.csv.gz": (
        "weather.csv of https://github.com/scikit-multiflow/streaming-datasets"
    ),
    "train.parquet": (
        "what `sklearn-era numerai download` leaves as train_ROUND.parquet in data/"
    ),
    "features.json": "what `sklearn-era numerai download` leaves beside it",
    "numerai_sample.parquet": (
        "numerox/tests/test_data.hdf of https://github.com/numerai/numerox"
    ),
    **dict.fromkeys([f"{x}.parquet" for x in _OF_R], "the data of an R package"),
}
